"""Whether a score is the solution's own: trials by altered tests, and who is drawn for them."""
