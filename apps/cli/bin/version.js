// Plain JavaScript, as launch.js is.

export const MINIMUM_MAJOR = 24;

/** Whether the Node that runs this can run the project. */
export function isNodeNewEnough(version = process.versions.node) {
  return Number(version.split('.')[0]) >= MINIMUM_MAJOR;
}
