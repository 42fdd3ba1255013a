from .checks import similar_names as similar_names
from .rubric import Rubric as Rubric, SupportsGrade as SupportsGrade

__all__: list[str]
