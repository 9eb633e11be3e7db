/** A process of its own that creates objects against others, or hangs in the middle of an upload. */
import { DirectoryObjects } from '../../../infra/objects/directory-objects.ts';

const [root = '', task = '', what = ''] = process.argv.slice(2);
const objects = new DirectoryObjects({ root });

async function race(): Promise<void> {
  process.send!('ready');
  await new Promise((resolve) => {
    process.once('message', resolve);
  });
  const won: string[] = [];
  await Promise.all(
    Array.from({ length: Number(what) }, async (_, n) => {
      const key = `race/${n}`;
      if ((await objects.create(key, new TextEncoder().encode(`writer ${task}`))) === 'created') won.push(key);
    }),
  );
  await objects.close();
  process.send!(won);
}

async function hang(): Promise<void> {
  await objects.upload(
    what,
    8 * 1_048_576,
    (async function* () {
      for (let n = 0; n < 4; n++) yield new Uint8Array(1_048_576);
      process.send!('in the middle');
      await new Promise(() => {
        setInterval(() => {}, 60_000);
      });
    })(),
  );
}

await (task === 'upload' ? hang() : race());
