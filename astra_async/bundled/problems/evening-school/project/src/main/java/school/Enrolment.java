package school;

/** A person's place in a course, or on its waiting list. */
public class Enrolment {
    public enum Status { ENROLLED, WAITING }

    private final int number;
    private final String email;
    private Status status;

    public Enrolment(int number, String email, Status status) {
        this.number = number;
        this.email = email;
        this.status = status;
    }

    public int getNumber() {
        return number;
    }

    public String getEmail() {
        return email;
    }

    public Status getStatus() {
        return status;
    }

    public void setStatus(Status status) {
        this.status = status;
    }
}
