"""check-sink: is a sink that someone else wrote effectively-once?"""
