"""`critique.evaluate`: request, routing, reply, scores, files, audit."""
