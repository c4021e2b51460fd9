import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * Runs a name node and a data node on 127.0.0.1. The program prints the port of the name node's
 * HTTP server, and stops when standard input ends. The argument is the folder for the blocks.
 */
public final class MiniHdfs {
    private MiniHdfs() {}

    public static void main(String[] args) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, args[0]);
        try (MiniDFSCluster cluster =
                new MiniDFSCluster.Builder(configuration).numDataNodes(1).build()) {
            cluster.waitActive();
            System.out.println(cluster.getNameNode().getHttpAddress().getPort());
            while (System.in.read() >= 0) {}
        }
    }
}
