# What `require` finds in the folders of the include path, in front of which PHP looks where it runs.
command -v php >/dev/null && php -r '
foreach (array_filter(array_diff(explode(PATH_SEPARATOR, get_include_path()), ["."]), "is_dir") as $folder) {
    $files = new RecursiveDirectoryIterator($folder, FilesystemIterator::SKIP_DOTS);
    foreach (new RecursiveIteratorIterator($files) as $file) {
        echo substr($file->getPathname(), strlen($folder) + 1), "\n";
    }
}' | sort -u >astra-installed/php
