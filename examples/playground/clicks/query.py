"""The query that the job clicks becomes: it copies the topic clicks into files, one per batch.

Its checkpoint location says where it begins. With --finish it ends the batch that it has begun,
reads what is there, and stops.
"""

import sys

from pyspark.sql import SparkSession

trigger = {"availableNow": True} if "--finish" in sys.argv else {"processingTime": "2 seconds"}
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
    .trigger(**trigger)
    .start()
    .awaitTermination()
)
