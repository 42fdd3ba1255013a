"""What a cascade would have cost and decided, from a run in which all of its judges voted on everything."""

from autorubric.escalation._calibrate import EscalationCurve, calibrate_escalation
from autorubric.escalation._replay import EscalationPoint, replay_escalation

__all__ = ["EscalationCurve", "EscalationPoint", "calibrate_escalation", "replay_escalation"]
