"""Pictures and pages. The only room that knows matplotlib, and it imports it late."""
