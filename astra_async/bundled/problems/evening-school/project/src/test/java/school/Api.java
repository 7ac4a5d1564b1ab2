package school;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.time.DayOfWeek;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.springframework.http.HttpMethod;
import org.springframework.http.MediaType;
import org.springframework.mock.web.MockServletContext;
import org.springframework.test.web.servlet.MockMvc;
import org.springframework.test.web.servlet.request.MockHttpServletRequestBuilder;
import org.springframework.test.web.servlet.request.MockMvcRequestBuilders;
import org.springframework.test.web.servlet.setup.MockMvcBuilders;
import org.springframework.web.context.support.XmlWebApplicationContext;

/** The whole application behind MockMvc, with four courses. */
class Api {
    static final ObjectMapper JSON = new ObjectMapper();

    private final MockMvc mvc;

    record Reply(int status, String location, String text) {
        JsonNode json() throws Exception {
            return JSON.readTree(text);
        }

        void isError(int status, String error) throws Exception {
            assertEquals(status, status());
            assertEquals(error, json().path("error").asText());
        }
    }

    Api() {
        var context = new XmlWebApplicationContext();
        context.setServletContext(new MockServletContext());
        context.setConfigLocation("classpath:application.xml");
        context.refresh();
        var store = context.getBean(CourseStore.class);
        store.add(new Course("spanish", "Spanish for beginners", DayOfWeek.TUESDAY, 2));
        store.add(new Course("pottery", "Pottery", DayOfWeek.TUESDAY, 1));
        store.add(new Course("chess", "Chess", DayOfWeek.MONDAY, 3));
        store.add(new Course("choir", "Choir", DayOfWeek.FRIDAY, 40));
        mvc = MockMvcBuilders.webAppContextSetup(context).build();
    }

    Reply get(String path) throws Exception {
        return send(HttpMethod.GET, path, null);
    }

    Reply enrol(String course, String email) throws Exception {
        return send(HttpMethod.POST, "/courses/" + course + "/enrolments", Map.of("email", email));
    }

    Reply cancel(String course, int number) throws Exception {
        return send(HttpMethod.DELETE, "/courses/" + course + "/enrolments/" + number, null);
    }

    /** For example `ENROLLED` or `WAITING 2`. */
    String status(String course, int number) throws Exception {
        Reply reply = get("/courses/" + course + "/enrolments/" + number);
        assertEquals(200, reply.status());
        JsonNode position = reply.json().path("position");
        return reply.json().path("status").asText() + (position.isNumber() ? " " + position.asInt() : "");
    }

    Reply send(HttpMethod method, String path, Object body) throws Exception {
        MockHttpServletRequestBuilder request = MockMvcRequestBuilders.request(method, URI.create(path))
            .accept(MediaType.APPLICATION_JSON);
        if (body != null) {
            request.contentType(MediaType.APPLICATION_JSON).content(JSON.writeValueAsString(body));
        }
        var response = mvc.perform(request).andReturn().getResponse();
        return new Reply(response.getStatus(), response.getHeader("Location"), response.getContentAsString());
    }

    /** The texts of a field in a list of objects. */
    static List<String> texts(JsonNode list, String field) {
        List<String> found = new ArrayList<>();
        list.forEach(each -> found.add(each.path(field).asText()));
        return found;
    }
}
