package school;

import java.util.Map;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.RestControllerAdvice;

/** The responses for errors. */
@RestControllerAdvice
public class Refusals {
    @ExceptionHandler(Refusal.class)
    public ResponseEntity<Map<String, String>> refused(Refusal refusal) {
        return ResponseEntity.status(refusal.getStatus()).body(Map.of("error", refusal.getMessage()));
    }
}
