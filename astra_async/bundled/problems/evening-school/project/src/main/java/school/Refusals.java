package school;

/** The responses for errors. */
public class Refusals {
}
