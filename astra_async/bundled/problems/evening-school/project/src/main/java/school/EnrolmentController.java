package school;

import org.springframework.web.bind.annotation.RestController;

@RestController
public class EnrolmentController {
}
