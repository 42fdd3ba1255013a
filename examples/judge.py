"""A judge that runs offline, for these examples only: it looks for words.

Replace it with a model: `CriterionGrader(judges=["gpt-6-luna"])`.
"""

from autorubric import CriterionGrader, JudgeReply, JudgeRequest

WORDS = {
    "polite": ("thank", "sorry", "gladly", "please", "of course"),
    "next_step": ("send", "click", "open", "leaves", "follows", "check"),
    "blames": ("read the terms", "already told", "your fault"),
}


def look_for_words(request: JudgeRequest) -> JudgeReply:
    """Answer MET if the text has one of the criterion's words, and name it as the reason."""
    text = (request.submission.text or "").lower()
    found = [word for word in WORDS[request.criterion.name or ""] if word in text]
    return JudgeReply(answer="MET" if found else "UNMET", reason=f"found {found or 'nothing'}")


GRADER = CriterionGrader(judges=[look_for_words])
