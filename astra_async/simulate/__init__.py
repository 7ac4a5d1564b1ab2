"""A simulated provider: a real HTTP server that speaks the providers' wire formats.

For demonstrations, load and fault tests. Its eight models (`profiles.py`) answer bundled problems from
the problems' own reference and faulty solutions, at a skill of their own. What a model answers to a
sample depends on names and the seed alone; see `draws.py`.

    server.py         life-cycle and routes          service.py    one call from request to last byte
    model_answers.py  what a model says              formatting.py files as XML or JSON, with flaws
    delivery.py       when pieces are due, faults    numbering.py  which problem, sample and attempt
    limits.py         rate limits, the prompt cache  profiles.py   the models
    draws.py          random numbers by names        wires/        one file for each wire format
"""
