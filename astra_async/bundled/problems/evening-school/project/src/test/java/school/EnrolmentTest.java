package school;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.http.HttpMethod;

class EnrolmentTest {
    private final Api api = new Api();

    @Test
    void anEnrolmentHasANumberAndAPath() throws Exception {
        Api.Reply reply = api.enrol("spanish", " Ada@Example.org ");
        assertEquals(201, reply.status());
        assertEquals("/courses/spanish/enrolments/1", reply.location());
        assertEquals(1, reply.json().path("number").asInt());
        assertEquals("ada@example.org", reply.json().path("email").asText());
        assertEquals("ENROLLED", reply.json().path("status").asText());
        assertFalse(reply.json().hasNonNull("position"));
        Api.Reply found = api.get("/courses/spanish/enrolments/1");
        assertEquals(200, found.status());
        assertEquals(reply.json(), found.json());
        api.get("/courses/spanish/enrolments/2").isError(404, "Unknown enrolment");
        api.get("/courses/latin/enrolments/1").isError(404, "Unknown course");
    }

    @Test
    void peopleWaitOnceACourseIsFull() throws Exception {
        api.enrol("pottery", "ada@example.org");
        Api.Reply reply = api.enrol("pottery", "bob@example.org");
        assertEquals(201, reply.status());
        assertEquals("WAITING", reply.json().path("status").asText());
        assertEquals(1, reply.json().path("position").asInt());
        api.enrol("pottery", "eve@example.org");
        assertEquals("ENROLLED", api.status("pottery", 1));
        assertEquals("WAITING 1", api.status("pottery", 2));
        assertEquals("WAITING 2", api.status("pottery", 3));
    }

    @Test
    void anEnrolmentThatIsNotPossibleIsRefused() throws Exception {
        api.enrol("latin", "nobody").isError(404, "Unknown course");
        for (String email : List.of("", "ada", "ada@", "@example.org", "ada@example", "a da@example.org")) {
            api.enrol("pottery", email).isError(400, "Invalid email");
        }
        api.send(HttpMethod.POST, "/courses/pottery/enrolments", Map.of()).isError(400, "Invalid email");
        assertEquals(201, api.enrol("pottery", "ada@example.org").status());
        api.enrol("pottery", "ADA@example.org").isError(409, "Already on the list");
        assertEquals(201, api.enrol("pottery", "bob@example.org").status());
        api.enrol("pottery", "bob@example.org").isError(409, "Already on the list");
        assertEquals(3, api.enrol("pottery", "eve@example.org").json().path("number").asInt());
    }

    @Test
    void aPersonHasOnePlaceADay() throws Exception {
        api.enrol("choir", "ada@example.org");
        api.enrol("spanish", "ada@example.org");
        api.enrol("chess", "ada@example.org");
        api.enrol("pottery", "ada@example.org").isError(409, "Another course that day");
        api.enrol("pottery", "bob@example.org");
        api.enrol("pottery", "eve@example.org");
        assertEquals(201, api.enrol("spanish", "eve@example.org").status());
        assertEquals(List.of("chess", "spanish", "choir"), timetable("Ada@example.org"));
        assertEquals(List.of("spanish"), timetable("eve@example.org"));
        assertEquals(List.of(), timetable("nobody@example.org"));
    }

    private List<String> timetable(String email) throws Exception {
        Api.Reply reply = api.get("/timetable?email=" + email);
        assertEquals(200, reply.status());
        return Api.texts(reply.json().path("courses"), "id");
    }
}
