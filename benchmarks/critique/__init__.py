"""Memory and time of critique passes over many drafts."""
