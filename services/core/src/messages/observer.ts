/** Told of the pipeline's work, by whoever counts it. */
export interface PipelineObserver {
  /** A batch was decided and written. @param refused how many of its messages were refused */
  written(messages: number, refused: number, seconds: number): void;
}
