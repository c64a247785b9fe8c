"""The generator of the small world that the Pocket models are trained on."""

from .world import END, document, make_story

__all__ = ["END", "document", "make_story"]
