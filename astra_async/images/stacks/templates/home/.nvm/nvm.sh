# Stands in for nvm: the image has the one Node.js that the project asks for, and a run has no network.
nvm() {
  case ${1-} in
    current | version) node --version ;;
    which) command -v node ;;
  esac
  return 0
}
