package school;

import java.time.DayOfWeek;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

@RestController
public class CourseController {
    static final Comparator<Course> ORDER = Comparator.comparing(Course::getDay).thenComparing(Course::getTitle);

    private final CourseStore store;

    public CourseController(CourseStore store) {
        this.store = store;
    }

    public record Shown(String id, String title, DayOfWeek day, int capacity, long enrolled, long waiting) {
        static Shown of(Course course) {
            long enrolled = CourseController.enrolled(course);
            return new Shown(course.getId(), course.getTitle(), course.getDay(), course.getCapacity(), enrolled,
                course.getEnrolments().size() - enrolled);
        }
    }

    @GetMapping("/courses")
    public Map<String, List<Shown>> list(
            @RequestParam(required = false) String day, @RequestParam(defaultValue = "false") boolean free) {
        DayOfWeek wanted = day == null ? null : parse(day);
        return Map.of("courses", store.all().stream()
            .filter(course -> wanted == null || course.getDay() == wanted)
            .filter(course -> !free || enrolled(course) < course.getCapacity())
            .sorted(ORDER)
            .map(Shown::of)
            .toList());
    }

    static long enrolled(Course course) {
        return course.getEnrolments().stream()
            .filter(each -> each.getStatus() == Enrolment.Status.ENROLLED)
            .count();
    }

    private static DayOfWeek parse(String day) {
        try {
            return DayOfWeek.valueOf(day.toUpperCase(Locale.ROOT));
        } catch (IllegalArgumentException error) {
            throw new Refusal(HttpStatus.BAD_REQUEST, "Unknown day");
        }
    }
}
