package school;

import org.springframework.http.HttpStatus;

/** A request that the rules refuse: the status of the response, and its error text. */
public class Refusal extends RuntimeException {
    private final HttpStatus status;

    public Refusal(HttpStatus status, String message) {
        super(message);
        this.status = status;
    }

    public HttpStatus getStatus() {
        return status;
    }
}
