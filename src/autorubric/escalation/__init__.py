"""Estimates of the cost and accuracy of a cascade, from a run in which all judges voted on everything."""

from autorubric.escalation._calibrate import EscalationCurve, calibrate_escalation
from autorubric.escalation._replay import EscalationPoint, replay_escalation

__all__ = ["EscalationCurve", "EscalationPoint", "calibrate_escalation", "replay_escalation"]
