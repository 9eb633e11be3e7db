import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { cp, mkdir, stat } from 'node:fs/promises';
import * as path from 'node:path';
import { promisify } from 'node:util';

/**
 * Carries out the steps of a Containerfile without a container engine and without rights: the root of each stage is a
 * folder, and the system of this machine is what its base image would bring. Knows the instructions of ours, and throws
 * at any other one.
 */

/** A line of the file: `RUN`, and the rest of it. */
export type Instruction = readonly [name: string, text: string];

/** What an image is made of, with the folder that stands for its root. */
export interface Image {
  readonly root: string;
  readonly base: string;
  readonly env: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly user: string;
  readonly folder: string;
  readonly volumes: readonly string[];
  readonly ports: readonly string[];
  readonly stopSignal: string;
  readonly health: readonly string[];
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
}

/** What only root can do, and what has nothing to do with the files of the image. */
const WITHOUT_RIGHTS = 'useradd() { :; }; chown() { :; };';
/** A path of the image in a line of a shell. */
const PATH_OF_IMAGE = /(?<=^|\s)\/(?=\w)/g;
const VARIABLE = /([\w.]+)=("[^"]*"|\S+)/g;

/** The instructions of a Containerfile, in order. */
export function instructionsOf(text: string): Instruction[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [name, ...words] = line.split(' ');
      return [name!, words.join(' ')];
    });
}

const variablesOf = (text: string): Record<string, string> =>
  Object.fromEntries([...text.matchAll(VARIABLE)].map(([, name, value]) => [name!, value!.replaceAll('"', '')]));
const listOf = (text: string): string[] => JSON.parse(text) as string[];

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Step = (image: Mutable<Image>, text: string) => void;

/** Instructions that do nothing but say something about the image. */
const TELLS: Readonly<Record<string, Step>> = {
  ENV: (image, text) => {
    image.env = { ...image.env, ...variablesOf(text) };
  },
  LABEL: (image, text) => {
    image.labels = { ...image.labels, ...variablesOf(text) };
  },
  USER: (image, text) => {
    image.user = text;
  },
  WORKDIR: (image, text) => {
    image.folder = text;
  },
  VOLUME: (image, text) => {
    image.volumes = [...image.volumes, text];
  },
  EXPOSE: (image, text) => {
    image.ports = [...image.ports, text];
  },
  STOPSIGNAL: (image, text) => {
    image.stopSignal = text;
  },
  HEALTHCHECK: (image, text) => {
    image.health = listOf(text.slice(text.indexOf('[')));
  },
  ENTRYPOINT: (image, text) => {
    image.entrypoint = listOf(text);
  },
  CMD: (image, text) => {
    image.command = listOf(text);
  },
};

/** What an image begins with: its base, and what that says of it. */
function imageIn(root: string, base: string): Mutable<Image> {
  return {
    root,
    base,
    env: {},
    labels: {},
    user: 'root',
    folder: '/',
    volumes: [],
    ports: [],
    stopSignal: 'SIGTERM',
    health: [],
    entrypoint: [],
    command: [],
  };
}

/** Where the file is carried out. */
export interface Build {
  /** What the image is built from, as the builder gets it. */
  readonly context: string;
  /** The roots of the stages are made in it. */
  readonly folder: string;
  /** As builders name it: `TARGETARCH`. */
  readonly arch: string;
}

/** Carries out what a Containerfile says, and gives the image of its last stage. */
export async function carryOut(text: string, { context, folder, arch }: Build): Promise<Image> {
  const stages = new Map<string, Mutable<Image>>();
  let image: Mutable<Image> | null = null;
  let args: Record<string, string> = {};
  for (const [name, rest] of instructionsOf(text)) {
    if (name === 'FROM') {
      const [, base, stage = 'image'] = /^(\S+)(?: AS (\S+))?$/.exec(rest)!;
      image = imageIn(path.join(folder, stage), base!);
      stages.set(stage, image);
      args = {};
      await mkdir(image.root);
    } else if (image === null) throw new Error(`${name} stands before the first FROM.`);
    else if (name === 'ARG') {
      if (rest !== 'TARGETARCH') throw new Error(`No builder gives ${rest}.`);
      args[rest] = arch;
    } else if (name === 'RUN') await run(rest, image, args);
    else if (name === 'COPY') {
      const [, stage, words] = /^(?:--from=(\S+) )?(.*)$/.exec(rest)!;
      await copy(words!, stage === undefined ? context : stages.get(stage)!.root, image.root);
    } else if (TELLS[name] === undefined) throw new Error(`${name} is not known here.`);
    else TELLS[name](image, rest);
  }
  return image!;
}

async function run(line: string, { root, env }: Image, args: Readonly<Record<string, string>>): Promise<void> {
  const moved = line.replaceAll(PATH_OF_IMAGE, `${root}/`);
  await promisify(execFile)('/bin/sh', ['-euc', `${WITHOUT_RIGHTS} ${moved}`], {
    cwd: root,
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', ...env, ...args },
  });
}

/** Files go into a folder, the content of a folder goes where that is named, as builders do it. */
async function copy(words: string, from: string, root: string): Promise<void> {
  const named = words.split(' ');
  const into = named.pop()!;
  const to = path.join(root, into);
  const found = named.flatMap((each) => globSync(path.join('.', each), { cwd: from }));
  if (found.length === 0) throw new Error(`There is nothing of ${named.join(' ')} to copy.`);
  await mkdir(into.endsWith('/') ? to : path.dirname(to), { recursive: true });
  for (const each of found) {
    const source = path.join(from, each);
    const isFolder = (await stat(source)).isDirectory();
    await cp(source, isFolder || !into.endsWith('/') ? to : path.join(to, path.basename(each)), {
      recursive: true,
      verbatimSymlinks: true,
    });
  }
}
