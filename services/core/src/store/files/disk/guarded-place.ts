import type { PartsPlace } from '../parts/place.ts';
import type { FilesDisk } from './files-disk.ts';

/** The same parts: none comes for as long as the disk hangs, or that of the files, which they become, is not there. */
export function guardPlace(place: Required<PartsPlace>, disk: FilesDisk | undefined): PartsPlace {
  if (!disk) return place;
  return {
    hold: (restBytes, sizeBytes) => place.hold(restBytes, sizeBytes),
    lackBytes: () => place.lackBytes(),
    list: () => disk.read(() => place.list()),
    received: (name) => disk.read(() => place.received(name)),
    write: (name, before, source) =>
      disk.write(async () => {
        await disk.require();
        return await place.write(name, before, source);
      }),
    read: (name) => place.read(name),
    remove: (name) => disk.write(() => place.remove(name)),
  };
}
