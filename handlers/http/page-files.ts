/** The files of the page at `/ui`, wherever they come from. */
export interface PageFiles {
  /** The one HTML page, which names its files as they lie from `/ui`: `./assets/NAME`. Errors: `page_unavailable`. */
  page(): Promise<PageText>;
  /**
   * A script, a style or an image, by the name that the page knows; null where the page has none of that name. Errors:
   * `page_unavailable`.
   */
  asset(name: string): Promise<PageFile | null>;
}

export interface PageText {
  /** Of the text; without quotes. */
  readonly etag: string;
  readonly text: string;
}

/** How files are kept compressed; which one is sent the caller says. */
export type PageCoding = 'br' | 'gzip';

export interface PageFile {
  readonly contentType: string;
  /** Of the bytes; without quotes. */
  readonly etag: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly encoded: Readonly<Record<PageCoding, Uint8Array<ArrayBuffer>>>;
}
