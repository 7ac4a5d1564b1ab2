package school;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.junit.jupiter.api.Test;

class CourseListTest {
    private final Api api = new Api();

    @Test
    void coursesAreListedByDayAndTitleWithTheirNumbers() throws Exception {
        api.enrol("pottery", "ada@example.org");
        api.enrol("pottery", "bob@example.org");
        JsonNode courses = courses("");
        assertEquals(List.of("chess", "pottery", "spanish", "choir"), Api.texts(courses, "id"));
        assertEquals(Api.JSON.readTree("""
            {"id": "pottery", "title": "Pottery", "day": "TUESDAY", "capacity": 1, "enrolled": 1, "waiting": 1}
            """), courses.get(1));
    }

    @Test
    void theListIsFilteredByDayAndFreePlaces() throws Exception {
        api.enrol("pottery", "ada@example.org");
        assertEquals(List.of("pottery", "spanish"), Api.texts(courses("?day=TUESDAY"), "id"));
        assertEquals(List.of("pottery", "spanish"), Api.texts(courses("?day=tuesday&free=false"), "id"));
        assertEquals(List.of("spanish"), Api.texts(courses("?day=Tuesday&free=true"), "id"));
        assertEquals(List.of("chess", "spanish", "choir"), Api.texts(courses("?free=true"), "id"));
        assertEquals(List.of(), Api.texts(courses("?day=SUNDAY"), "id"));
        api.get("/courses?day=someday").isError(400, "Unknown day");
    }

    private JsonNode courses(String query) throws Exception {
        Api.Reply reply = api.get("/courses" + query);
        assertEquals(200, reply.status());
        return reply.json().path("courses");
    }
}
