import type { Image } from '../../../services/compute/src/images/image.ts';

/** What was made where the internet is, for the scenario, which has none. */
export interface Plan {
  readonly image: Image;
  /** The folder of packages, as a file system. */
  readonly disk: string;
  /** Packages of the release that is installed first, by name. */
  readonly first: Readonly<Record<'skerry', string>>;
}
