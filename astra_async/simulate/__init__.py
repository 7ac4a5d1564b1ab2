"""A simulated provider: a real HTTP server that implements the providers' wire formats.

It is used for demonstrations, load tests and fault tests. Its eight models (`profiles.py`) answer bundled
problems with the problems' reference and faulty solutions, each at its own skill. The answer to a sample
depends only on names and the seed; see `draws.py`.

    server.py         life cycle and routes          service.py    one request from arrival to last byte
    model_answers.py  content of the answers         formatting.py files as XML or JSON, with flaws
    delivery.py       timing of pieces, faults       tool_work.py  answers of agents with tools
    limits.py         rate limits, prompt cache      profiles.py   the models
    draws.py          seeded random numbers          wires/        one file per wire format
"""
