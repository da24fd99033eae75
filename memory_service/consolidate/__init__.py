"""Learning from conversations: the queue of turns, and the worker that takes them.

A turn is stored at once and learnt from later (jobs, worker). No model is asked inside a
transaction: what was decided is applied, and its job finished, in one that checks again.
"""
