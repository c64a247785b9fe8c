"""The generator of the small world that the Pocket models are trained on."""

from .world import END, document, drill_document, make_story, talk_document

__all__ = ["END", "document", "drill_document", "make_story", "talk_document"]
