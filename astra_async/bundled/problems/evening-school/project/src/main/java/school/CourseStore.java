package school;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.springframework.stereotype.Repository;

/** All courses, in the order in which they were added. */
@Repository
public class CourseStore {
    private final Map<String, Course> courses = new LinkedHashMap<>();

    public void add(Course course) {
        courses.put(course.getId(), course);
    }

    public Optional<Course> find(String id) {
        return Optional.ofNullable(courses.get(id));
    }

    public List<Course> all() {
        return new ArrayList<>(courses.values());
    }
}
