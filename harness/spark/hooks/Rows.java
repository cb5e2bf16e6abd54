package bettong.hooks;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The rows that a sink under test is given: the same rows in the same micro-batches in every run.
 *
 * An offset is a number of batches. Row n (from 0) of the stream has id m/n, key n modulo the
 * number of keys, and the position n divided by it within that key. What Spark does not pin is an
 * option here: "layout" 0 deals keys to partitions one way, any other number another way, with
 * one partition more and keys interleaved differently; rows of one key stay in order. With "first"
 * the stream begins so many batches later; the row "odd" has a key that many a target refuses.
 */
public final class Rows implements TableProvider {
    private static final String SCHEMA =
        "id STRING, key STRING, seq BIGINT, value BIGINT, ts TIMESTAMP";
    private static final long FIRST_TIMESTAMP = 1704067200000000L;

    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return StructType.fromDDL(SCHEMA);
    }

    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
        return new RowsTable();
    }

    static final class RowsTable implements Table, SupportsRead {
        public String name() {
            return "bettong.rows";
        }

        public StructType schema() {
            return StructType.fromDDL(SCHEMA);
        }

        public Set<TableCapability> capabilities() {
            return Collections.singleton(TableCapability.MICRO_BATCH_READ);
        }

        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            return new RowsScan(options);
        }
    }

    static final class RowsScan implements ScanBuilder, Scan {
        private final CaseInsensitiveStringMap options;

        RowsScan(CaseInsensitiveStringMap options) {
            this.options = options;
        }

        public Scan build() {
            return this;
        }

        public StructType readSchema() {
            return StructType.fromDDL(SCHEMA);
        }

        public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
            return new RowsStream(options);
        }
    }

    static final class Batches extends Offset {
        final int count;

        Batches(int count) {
            this.count = count;
        }

        public String json() {
            return String.valueOf(count);
        }
    }

    static final class RowsStream implements MicroBatchStream, SupportsTriggerAvailableNow {
        private final int batches;
        private final int rows;
        private final int keys;
        private final int partitions;
        private final int layout;
        private final int empty;
        private final int odd;
        private final int first;

        RowsStream(CaseInsensitiveStringMap options) {
            batches = options.getInt("batches", 4);
            rows = options.getInt("rows", 20);
            keys = options.getInt("keys", 5);
            partitions = options.getInt("partitions", 2);
            layout = options.getInt("layout", 0);
            empty = options.getInt("empty", -1);
            odd = options.getInt("odd", -1);
            first = options.getInt("first", 0);
        }

        public Offset initialOffset() {
            return new Batches(0);
        }

        public Offset deserializeOffset(String json) {
            return new Batches(Integer.parseInt(json.trim()));
        }

        public Offset latestOffset() {
            throw new UnsupportedOperationException("a batch at a time");
        }

        public Offset latestOffset(Offset start, ReadLimit limit) {
            int done = start == null ? 0 : ((Batches) start).count;
            return new Batches(Math.min(done + 1, Math.max(done, batches)));
        }

        public ReadLimit getDefaultReadLimit() {
            return ReadLimit.allAvailable();
        }

        public Offset reportLatestOffset() {
            return new Batches(batches);
        }

        public void prepareForTriggerAvailableNow() {}

        public InputPartition[] planInputPartitions(Offset start, Offset end) {
            int batch = ((Batches) start).count;
            int slots = layout == 0 ? partitions : partitions + 1;
            List<InputPartition> planned = new ArrayList<InputPartition>();
            for (int slot = 0; slot < slots; slot++) {
                long[] numbers = batch == empty ? new long[0] : numbers(batch, slot, slots);
                planned.add(new Slot(numbers, keys, odd));
            }
            return (InputPartition[]) planned.toArray(new InputPartition[0]);
        }

        /** The numbers of the rows of a partition, in the order in which it is read. */
        private long[] numbers(int batch, int slot, int slots) {
            long begin = (long) (first + batch) * rows;
            List<Long> chosen = new ArrayList<Long>();
            if (layout == 0) {
                for (long n = begin; n < begin + rows; n++) {
                    if ((n % keys) % slots == slot) {
                        chosen.add(n);
                    }
                }
            } else {
                for (int key = keys - 1; key >= 0; key--) {
                    for (long n = begin; n < begin + rows; n++) {
                        if (n % keys == key && (key + layout) % slots == slot) {
                            chosen.add(n);
                        }
                    }
                }
            }
            long[] numbers = new long[chosen.size()];
            for (int i = 0; i < numbers.length; i++) {
                numbers[i] = ((Long) chosen.get(i)).longValue();
            }
            return numbers;
        }

        public PartitionReaderFactory createReaderFactory() {
            return new SlotReaders();
        }

        public void commit(Offset end) {}

        public void stop() {}
    }

    static final class Slot implements InputPartition {
        final long[] numbers;
        final int keys;
        final int odd;

        Slot(long[] numbers, int keys, int odd) {
            this.numbers = numbers;
            this.keys = keys;
            this.odd = odd;
        }

        /** The key of a row; that of the odd row is one that many a target refuses. */
        String key(long n) {
            if (n != odd) {
                return "k" + n % keys;
            }
            char[] tail = new char[70001];
            Arrays.fill(tail, 'x');
            tail[0] = 0;
            return "k" + n % keys + new String(tail);
        }
    }

    static final class SlotReaders implements PartitionReaderFactory {
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            return new SlotReader((Slot) partition);
        }
    }

    static final class SlotReader implements PartitionReader<InternalRow> {
        private final Slot slot;
        private int next = 0;

        SlotReader(Slot slot) {
            this.slot = slot;
        }

        public boolean next() throws IOException {
            if (next == slot.numbers.length) {
                return false;
            }
            if (next == (slot.numbers.length + 1) / 2) {
                tellMiddle();
            }
            next++;
            return true;
        }

        /** A step at which half of the partition's rows have been handed over. */
        private void tellMiddle() throws IOException {
            TaskContext task = TaskContext.get();
            String batch = task == null ? null : task.getLocalProperty("streaming.sql.batchId");
            if (batch != null) {
                String step = "batch=" + batch + "/p=" + task.partitionId() + "/a="
                    + task.attemptNumber() + "/source.middle";
                String instrumentation = Conductor.current();
                Conductor.tell(instrumentation, step, "before", null);
                Conductor.tell(instrumentation, step, "after", null);
            }
        }

        public InternalRow get() {
            long n = slot.numbers[next - 1];
            return new GenericInternalRow(new Object[] {
                UTF8String.fromString(String.format("m/%06d", new Object[] {Long.valueOf(n)})),
                UTF8String.fromString(slot.key(n)),
                Long.valueOf(n / slot.keys),
                Long.valueOf(n % 15 * 7919 % 1000),
                Long.valueOf(FIRST_TIMESTAMP + n * 1000000L),
            });
        }

        public void close() {}
    }
}
