package school;

import java.time.DayOfWeek;
import java.util.ArrayList;
import java.util.List;

/** A course on one evening a week. Its enrolments are in the order in which they came. */
public class Course {
    private final String id;
    private final String title;
    private final DayOfWeek day;
    private final int capacity;
    private final List<Enrolment> enrolments = new ArrayList<>();
    private int lastNumber = 0;

    public Course(String id, String title, DayOfWeek day, int capacity) {
        this.id = id;
        this.title = title;
        this.day = day;
        this.capacity = capacity;
    }

    public String getId() {
        return id;
    }

    public String getTitle() {
        return title;
    }

    public DayOfWeek getDay() {
        return day;
    }

    /** How many people can be enrolled. */
    public int getCapacity() {
        return capacity;
    }

    /** Those that are not cancelled; the list can be changed. */
    public List<Enrolment> getEnrolments() {
        return enrolments;
    }

    /** A number for the next enrolment; no number is given twice. */
    public int nextNumber() {
        lastNumber++;
        return lastNumber;
    }
}
