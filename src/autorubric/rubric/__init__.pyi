from .rubric import Rubric as Rubric

__all__: list[str]
