"""The batch interfaces of the simulated server: what was uploaded, what was created, and how it goes on."""
