/** Formats in which an image file holds a disk. */
export const CONTAINER_FORMATS = ['qcow2', 'vmdk', 'vdi', 'vhdx'] as const;
export type ContainerFormat = (typeof CONTAINER_FORMATS)[number];
/**
 * What an operator may say that an image is. A compressed file is meant by what is in it: `raw`.
 */
export const IMAGE_FORMATS = ['raw', ...CONTAINER_FORMATS] as const;
export type ImageFormatName = (typeof IMAGE_FORMATS)[number];
