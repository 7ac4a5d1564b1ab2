package school;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class CancellationTest {
    private final Api api = new Api();

    @Test
    void theFirstWhoWaitsMovesUp() throws Exception {
        for (String name : new String[] {"ada", "bob", "eve", "joe"}) {
            api.enrol("spanish", name + "@example.org");
        }
        Api.Reply reply = api.cancel("spanish", 1);
        assertEquals(204, reply.status());
        assertEquals("", reply.text());
        assertEquals("ENROLLED", api.status("spanish", 3));
        assertEquals("WAITING 1", api.status("spanish", 4));
        api.cancel("spanish", 1).isError(404, "Unknown enrolment");
        assertEquals(5, api.enrol("spanish", "ada@example.org").json().path("number").asInt());
        assertEquals("WAITING 2", api.status("spanish", 5));
        assertEquals(204, api.cancel("spanish", 4).status());
        assertEquals("ENROLLED", api.status("spanish", 2));
        assertEquals("WAITING 1", api.status("spanish", 5));
    }

    @Test
    void peopleWithAnotherPlaceThatDayKeepWaiting() throws Exception {
        api.enrol("pottery", "ada@example.org");
        api.enrol("pottery", "bob@example.org");
        api.enrol("pottery", "eve@example.org");
        api.enrol("spanish", "bob@example.org");
        api.cancel("pottery", 1);
        assertEquals("WAITING 1", api.status("pottery", 2));
        assertEquals("ENROLLED", api.status("pottery", 3));
        api.cancel("pottery", 3);
        assertEquals("WAITING 1", api.status("pottery", 2));
        assertEquals(4, api.enrol("pottery", "joe@example.org").json().path("number").asInt());
        assertEquals("ENROLLED", api.status("pottery", 4));
    }
}
