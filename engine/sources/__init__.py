"""Sources that need no server of Bettong's: generators, files, folders, Kafka."""
