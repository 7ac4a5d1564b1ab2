"""Whether a score is the solution's own: the trial by twins, and what looks like tampering."""
