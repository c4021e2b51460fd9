"""The query that the job clicks becomes: it copies the topic clicks into files, one per batch.

Its checkpoint location says where it begins, so it needs no startingOffsets.
"""

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("clicks").getOrCreate()
clicks = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "$kafka")
    .option("subscribe", "clicks")
    .load()
)
(
    clicks.selectExpr("CAST(value AS STRING)")
    .coalesce(1)
    .writeStream.format("text")
    .option("path", "$folder/spark")
    .option("checkpointLocation", "$folder/checkpoint")
    .trigger(processingTime="2 seconds")
    .start()
    .awaitTermination()
)
