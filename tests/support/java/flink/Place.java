package testjobs;

import java.nio.file.Path;

/**
 * Where the jobs find what they read, and where they leave what they write.
 *
 * @param secondServers those of another cluster; empty without one
 * @param root below which everything is written
 * @param input the directory of the files to read
 */
record Place(String bootstrapServers, String secondServers, Path root, Path input) {}
