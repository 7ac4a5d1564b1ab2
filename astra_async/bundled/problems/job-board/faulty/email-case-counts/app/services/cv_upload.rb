# A CV as it was sent, and what is wrong with it.
class CvUpload
  MAXIMUM_BYTES = 1_048_576
  MAGIC = "%PDF-".b.freeze

  def initialize(file)
    @file = file if file.is_a?(ActionDispatch::Http::UploadedFile)
  end

  def errors
    return ["can't be blank"] if @file.nil?
    return ["is too large"] if size > MAXIMUM_BYTES
    return ["must be a PDF"] unless pdf?

    []
  end

  def name
    @file.original_filename
  end

  def size
    @file.size
  end

  def bytes
    @file.rewind
    @file.read
  end

  private

  def pdf?
    name.downcase.end_with?(".pdf") && bytes.b.start_with?(MAGIC)
  end
end
