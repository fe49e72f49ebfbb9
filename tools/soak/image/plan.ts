import type { Image } from '../../../services/compute/src/images/image.ts';

/** What was made where the internet is, for the scenario, which has none. */
export interface Plan {
  readonly image: Image;
  /** A file system with the archive, its checksum and `deploy/`. */
  readonly disk: string;
}
