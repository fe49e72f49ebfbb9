import type { MessageStatus } from '@skerry/protocol';

/** Told of the pipeline's work, by whoever counts it. */
export interface PipelineObserver {
  /** A batch was decided and written. @param statuses what became of its messages, one by one */
  written(statuses: readonly MessageStatus[], seconds: number): void;
}
