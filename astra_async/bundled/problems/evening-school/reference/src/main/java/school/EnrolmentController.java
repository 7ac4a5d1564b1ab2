package school;

import com.fasterxml.jackson.annotation.JsonInclude;
import java.net.URI;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

@RestController
public class EnrolmentController {
    private final CourseStore store;

    public EnrolmentController(CourseStore store) {
        this.store = store;
    }

    @JsonInclude(JsonInclude.Include.NON_NULL)
    public record Shown(int number, String email, Enrolment.Status status, Integer position) {
    }

    @PostMapping("/courses/{id}/enrolments")
    public ResponseEntity<Shown> enrol(@PathVariable String id, @RequestBody Map<String, String> body) {
        Course course = course(id);
        String email = normal(body.getOrDefault("email", ""));
        if (!email.matches("[^@\\s]+@[^@\\s]+\\.[^@\\s]+")) {
            throw new Refusal(HttpStatus.BAD_REQUEST, "Invalid email");
        }
        if (course.getEnrolments().stream().anyMatch(each -> each.getEmail().equals(email))) {
            throw new Refusal(HttpStatus.CONFLICT, "Already on the list");
        }
        if (isBusy(email, course)) {
            throw new Refusal(HttpStatus.CONFLICT, "Another course that day");
        }
        boolean isFree = CourseController.enrolled(course) < course.getCapacity();
        Enrolment enrolment = new Enrolment(
            course.nextNumber(), email, isFree ? Enrolment.Status.ENROLLED : Enrolment.Status.WAITING);
        course.getEnrolments().add(enrolment);
        URI location = URI.create("/courses/" + id + "/enrolments/" + enrolment.getNumber());
        return ResponseEntity.created(location).body(shown(course, enrolment));
    }

    @GetMapping("/courses/{id}/enrolments/{number}")
    public Shown show(@PathVariable String id, @PathVariable int number) {
        Course course = course(id);
        return shown(course, enrolment(course, number));
    }

    @DeleteMapping("/courses/{id}/enrolments/{number}")
    @ResponseStatus(HttpStatus.NO_CONTENT)
    public void cancel(@PathVariable String id, @PathVariable int number) {
        Course course = course(id);
        Enrolment cancelled = enrolment(course, number);
        course.getEnrolments().remove(cancelled);
        if (cancelled.getStatus() == Enrolment.Status.ENROLLED) {
            course.getEnrolments().stream()
                .filter(each -> each.getStatus() == Enrolment.Status.WAITING)
                .filter(each -> !isBusy(each.getEmail(), course))
                .findFirst()
                .ifPresent(next -> next.setStatus(Enrolment.Status.ENROLLED));
        }
    }

    @GetMapping("/timetable")
    public Map<String, List<CourseController.Shown>> timetable(@RequestParam String email) {
        return Map.of("courses", store.all().stream()
            .filter(course -> isEnrolled(normal(email), course))
            .sorted(CourseController.ORDER)
            .map(CourseController.Shown::of)
            .toList());
    }

    private Course course(String id) {
        return store.find(id).orElseThrow(() -> new Refusal(HttpStatus.NOT_FOUND, "Unknown course"));
    }

    private static Enrolment enrolment(Course course, int number) {
        return course.getEnrolments().stream()
            .filter(each -> each.getNumber() == number)
            .findFirst()
            .orElseThrow(() -> new Refusal(HttpStatus.NOT_FOUND, "Unknown enrolment"));
    }

    private static Shown shown(Course course, Enrolment enrolment) {
        List<Enrolment> waiting = course.getEnrolments().stream()
            .filter(each -> each.getStatus() == Enrolment.Status.WAITING)
            .toList();
        int index = waiting.indexOf(enrolment);
        return new Shown(
            enrolment.getNumber(), enrolment.getEmail(), enrolment.getStatus(), index < 0 ? null : index + 1);
    }

    /** Does the person have a place in another course of the same day? */
    private boolean isBusy(String email, Course course) {
        return store.all().stream()
            .anyMatch(each -> each != course && each.getDay() == course.getDay() && isEnrolled(email, each));
    }

    private static boolean isEnrolled(String email, Course course) {
        return course.getEnrolments().stream().anyMatch(
            each -> each.getEmail().equals(email) && each.getStatus() == Enrolment.Status.ENROLLED);
    }

    private static String normal(String email) {
        return email.strip().toLowerCase(Locale.ROOT);
    }
}
