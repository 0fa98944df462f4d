"""Submits and inspects the jobs of a Kelos server, with the calls of Stolos.

    from kelos import api

    api.initialize()
    api.maybe_add_subtask("report", "20140601")
    api.check_state("report", "20140601", completed=True)
"""

__all__ = ["api", "exceptions"]
