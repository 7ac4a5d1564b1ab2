"""From changed files to a verdict: the container, its reports, which tests count, what is repeated."""
