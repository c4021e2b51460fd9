package testjobs;

import java.nio.file.Path;

/**
 * The locations from which the jobs read, and to which they write.
 *
 * @param secondServers the bootstrap servers of a second cluster; empty without one
 * @param root the directory for all written files
 * @param input the directory of the files to read
 */
record Place(String bootstrapServers, String secondServers, Path root, Path input) {}
