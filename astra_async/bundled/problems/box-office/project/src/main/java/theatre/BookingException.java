package theatre;

/** A booking that is not possible. */
public final class BookingException extends RuntimeException {
    public enum Reason {
        INVALID,
        SOLD_OUT,
        UNKNOWN_RESERVATION
    }

    private final Reason reason;

    public BookingException(Reason reason) {
        super(reason.name());
        this.reason = reason;
    }

    public Reason reason() {
        return reason;
    }
}
