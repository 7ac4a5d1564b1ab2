"""The gateway between agents and the model under test: one server, four interfaces (`server`)."""
